import type { Column } from "../domain/row.ts";
import type { TaskHost, Transform, TransformStep } from "./task.ts";

/** The transforms of a plan as one: each is given what the one before it returned. Without steps, rows pass as they are. */
export async function openChain(
  host: TaskHost,
  steps: readonly TransformStep[],
  input: readonly Column[],
): Promise<Transform> {
  const transforms: Transform[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(transforms.map((transform) => transform.close()));
  };
  let columns = input;
  try {
    for (const step of steps) {
      const transform = await host.open(step, columns);
      transforms.push(transform);
      columns = transform.columns;
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    columns,
    async apply(rows, signal) {
      let current = rows;
      for (const transform of transforms) current = await transform.apply(current, signal);
      return current;
    },
    close,
  };
}
