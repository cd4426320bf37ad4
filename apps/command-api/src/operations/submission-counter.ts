import { Inject, Injectable } from '@nestjs/common';
import { DEPENDENCIES, type CommandApiDependencies } from '../dependencies.js';

/** Counts submissions by what became of them; one that could not be served counts as refused. */
@Injectable()
export class SubmissionCounter {
  private readonly planned;
  private readonly replayed;
  private readonly turnedDown;

  constructor(@Inject(DEPENDENCIES) { metrics }: CommandApiDependencies) {
    this.planned = metrics.operations.labels('planned');
    this.replayed = metrics.operations.labels('replayed');
    this.turnedDown = metrics.operations.labels('refused');
  }

  accepted(replayed: boolean): void {
    (replayed ? this.replayed : this.planned).inc();
  }

  refused(): void {
    this.turnedDown.inc();
  }
}
