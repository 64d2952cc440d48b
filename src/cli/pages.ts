interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

const PAGE_SIZE = 200;

/** Reads page after page, and gives all of it in the form of one. */
export async function allPages<T>(
  read: (page: { limit: number; after?: string }) => Promise<Page<T>>,
): Promise<Page<T>> {
  const items: T[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const page = await read({ limit: PAGE_SIZE, ...(after !== undefined && { after }) });
    items.push(...page.items);
    after = page.next;
  }
  return { items, next: null };
}
