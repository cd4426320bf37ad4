/** Things to do later, which can all be called off. They do not keep the process alive. */
export class Timers {
  private readonly running = new Set<NodeJS.Timeout>();

  /** Does it after the delay; the answer calls this one off. */
  after(delayMs: number, act: () => void): () => void {
    const timer = setTimeout(() => {
      this.running.delete(timer);
      act();
    }, delayMs);
    timer.unref();
    this.running.add(timer);
    return () => {
      clearTimeout(timer);
      this.running.delete(timer);
    };
  }

  clear(): void {
    for (const timer of this.running) clearTimeout(timer);
    this.running.clear();
  }
}
