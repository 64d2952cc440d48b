/** Numbers as people read them. */

export function count(number: number): string {
  return number.toLocaleString("en");
}

/** 1 row, 2 rows, 1,000 rows. */
export function plural(number: number, one: string, several = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : several}`;
}
