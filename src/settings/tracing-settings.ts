import { z } from "zod";
import { commaList, isHttpUrl } from "../domain/setting-fields.ts";

/** Names and meanings are OpenTelemetry's. */

const httpUrl = z.string().refine(isHttpUrl, "is not an http or https URL");

const HEADER = /^([!#$%&'*+.^`|~\w-]+)\s*=\s*(.*)$/;

const headerList = commaList
  .refine((items) => items.every((item) => HEADER.test(item)), "is not a list such as name=value,name=value")
  .transform((items) => Object.fromEntries(items.map(headerOf)));

/** Values may be percent-encoded, so that they can contain a comma or an equals sign. */
function headerOf(item: string): [name: string, value: string] {
  const [, name = "", value = ""] = HEADER.exec(item) ?? [];
  try {
    return [name, decodeURIComponent(value)];
  } catch {
    return [name, value];
  }
}

export const tracingFields = {
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrl.optional(),
  OTEL_EXPORTER_OTLP_HEADERS: headerList.default({}),
  OTEL_SERVICE_NAME: z.string().default("vitrina"),
};
const schema = z.object(tracingFields);

export interface TracingSettings {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
}

/** The general endpoint is a base URL; the one for traces is used as it is. */
export function tracingSettings(env: z.infer<typeof schema>): TracingSettings | undefined {
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT?.replace(/\/+$/, "");
  const url = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? (base && `${base}/v1/traces`);
  if (url === undefined) return undefined;
  return { url, headers: env.OTEL_EXPORTER_OTLP_HEADERS, serviceName: env.OTEL_SERVICE_NAME };
}
