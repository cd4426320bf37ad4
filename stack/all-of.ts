/** As `Promise.all`, but waits for all also when one has failed: what is still starting could not be ended. */
export async function allOf<T extends readonly unknown[]>(running: readonly [...{ [K in keyof T]: Promise<T[K]> }]): Promise<T> {
  const results: readonly PromiseSettledResult<unknown>[] = await Promise.allSettled(running);
  const values = results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
  return values as unknown as T;
}
