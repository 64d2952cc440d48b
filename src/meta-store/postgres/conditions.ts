/** Collects the conditions of a list with their values, so that a filter nobody asked for costs nothing. */
export class Conditions {
  readonly values: unknown[] = [];
  readonly #texts: string[] = [];

  /** `text` gets the placeholders of the values. */
  add(text: (...placeholders: string[]) => string, ...values: unknown[]): void {
    this.#texts.push(text(...values.map((value) => this.place(value))));
  }

  /** Adds the condition only for a value that was given. */
  addIfGiven<T>(value: T | undefined, text: (placeholder: string) => string): void {
    if (value !== undefined) this.add((placeholder = "") => text(placeholder), value);
  }

  place(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  get where(): string {
    return this.#texts.length === 0 ? "" : `WHERE ${this.#texts.join(" AND ")}`;
  }
}
