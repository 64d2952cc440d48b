export const MUTATIONS: readonly {
  readonly name: string;
  readonly file: string;
  readonly replace: readonly (readonly [from: string, to: string])[];
  readonly tests: readonly string[];
  readonly needs?: string;
}[];
