import { z } from "zod";
import { VitrinaError } from "../domain/error-catalogue.ts";

export const confirmQuery = z.strictObject({
  confirm: z
    .enum(["true", "false"])
    .default("false")
    .describe("Without it the answer is 409, and says what would happen."),
});

/** `meaning` says exactly what will happen: a person confirms a sentence, not a word. */
export function requireConfirmation({ confirm }: z.infer<typeof confirmQuery>, meaning: string): void {
  if (confirm === "true") return;
  throw new VitrinaError("CONFIRMATION_NEEDED", `${meaning} Nothing has been changed yet.`);
}
