import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

/** What npm run test:helm cannot know; it checks the chart as helm renders it. */

const textOf = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");

describe("the Helm chart", () => {
  it("asks for the image of this version", () => {
    const { appVersion } = parse(textOf("deploy/helm/vitrina/Chart.yaml")) as { appVersion: string };
    const { version } = JSON.parse(textOf("package.json")) as { version: string };
    expect(appVersion).toBe(version);
  });

  it("runs as the user of the image", () => {
    const user = /^USER (\d+):(\d+)$/m.exec(textOf("Dockerfile"));
    const helpers = textOf("deploy/helm/vitrina/templates/_helpers.tpl");
    expect(helpers).toContain(`runAsUser: ${user?.[1]}`);
    expect(helpers).toContain(`runAsGroup: ${user?.[2]}`);
  });
});
