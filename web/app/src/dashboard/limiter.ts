// Lets a few questions be asked at a time, so that a dashboard of sixty queries does not stand in the way of everything else.

export class Limiter {
  private running = 0;
  private waiting: (() => void)[] = [];

  constructor(private readonly most: number) {}

  async run<T>(ask: () => Promise<T>): Promise<T> {
    if (this.running >= this.most) await new Promise<void>((go) => this.waiting.push(go));
    else this.running++;
    try {
      return await ask();
    } finally {
      const next = this.waiting.shift();
      // The place goes to the next one as it is.
      if (next !== undefined) next();
      else this.running--;
    }
  }
}

/** Queries that dashboards ask at the same time. */
export const queries = new Limiter(4);
