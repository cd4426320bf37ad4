import { CRASH_POINTS, PROVIDER_CLASSES, type CrashPoint, type DoomedProcess, type ProviderClass } from './crash-points.js';
import { CRASH_VARIANTS, runCrashCase, type CrashVariant } from './crash-case.js';
import { runCutCommits, runFullDisk, runSkewedClock, runTerminatedSessions } from './database-cases.js';
import type { Verdict } from './judge.js';
import { runRelayCase } from './relay-case.js';
import type { FaultServer } from './server.js';
import { runZombieCase } from './zombie-case.js';

/** One run against a database and a lab of its own. */
export interface Case {
  /** `point class variant`. */
  readonly name: string;
  /** A crash point, several of them in a chain, or the fault. */
  readonly point: string;
  /** What dies or suffers. */
  readonly process: DoomedProcess;
  /** The crash points that the case must reach. */
  readonly crashPoints: readonly CrashPoint[];
  readonly labClass: ProviderClass;
  readonly variant: string;
  run(server: FaultServer): Promise<Verdict>;
}

type Made = Omit<Case, 'name'>;

/** Every crash point with every class that can reach it, each way of restarting, and the other faults with every class. */
export function allCases(occurrence = 1): readonly Case[] {
  return named([...CRASH_POINTS.flatMap((point) => casesOf(point, occurrence)), ...zombieCases(), ...databaseCases()]);
}

/** The small matrix: each crash point once, with the class that it is aimed at, and each other fault once or twice. */
export function aimedCases(): readonly Case[] {
  const relayed = CRASH_POINTS.filter(({ process }) => process === 'relay');
  const own = CRASH_POINTS.filter(({ process }) => process === 'standalone');
  const [frozen, passed] = [own.filter(isFrozen), own.filter((point) => !isFrozen(point))];
  const others = [...zombieCases(), ...databaseCases()].filter(({ point, variant, labClass }) =>
    AIMED_FAULTS.includes(`${point} ${variant} ${labClass}`),
  );
  return named([
    ...chains(passed),
    ...frozen.flatMap((point) => frozenCases(point).filter(({ labClass }) => labClass === point.aim)),
    ...others,
    chain(
      relayed.filter((point) => !isTakenOver(point)),
      'c',
      'restart',
    ),
    ...relayed.filter(isTakenOver).map((point) => chain([point], point.aim, 'race')),
  ]);
}

/** The point after which whoever takes over must publish what is there already: the one that is tried with another relay beside. */
function isTakenOver({ port, moment }: CrashPoint): boolean {
  return port === 'publisher.publish' && moment === 'after';
}

const AIMED_FAULTS: readonly string[] = [
  ...['zombie ACCEPT_HANG c', 'zombie HANG f', 'commit_cut alternating c', 'commit_cut alternating e', 'sessions_terminated under_load d'],
  ...['clock_skew ahead d', 'disk_full under_load f'],
];

/** A process that dies at one point and starts again is one start; a case for each point would be two or three, the most of its time. */
const CHAIN_POINTS_MAX = 6;

function chains(points: readonly CrashPoint[]): Made[] {
  const made: Made[] = [];
  for (const labClass of PROVIDER_CLASSES) {
    const own = points.filter(({ aim }) => aim === labClass);
    for (let from = 0; from < own.length; from += CHAIN_POINTS_MAX) {
      made.push(chain(own.slice(from, from + CHAIN_POINTS_MAX), labClass, CRASH_VARIANTS[made.length % CRASH_VARIANTS.length]!));
    }
  }
  return made;
}

/** All of one process. */
function chain(crashPoints: readonly CrashPoint[], labClass: ProviderClass, variant: CrashVariant, occurrence = 1): Made {
  const { process } = crashPoints[0]!;
  const run = process === 'relay' ? runRelayCase : runCrashCase;
  return {
    ...{ point: crashPoints.map(({ name }) => name).join('>'), process, crashPoints, labClass, variant },
    run: (server) => run(server, { points: crashPoints, labClass, variant, occurrence }),
  };
}

function named(made: readonly Made[]): readonly Case[] {
  return made.map((each) => ({ ...each, name: `${each.point} ${each.labClass} ${each.variant}` }));
}

function isFrozen({ deed }: CrashPoint): boolean {
  return deed === 'outlive_the_lease';
}

function casesOf(point: CrashPoint, occurrence: number): Made[] {
  if (isFrozen(point)) return frozenCases(point);
  return point.classes.flatMap((labClass) => CRASH_VARIANTS.map((variant) => chain([point], labClass, variant, occurrence)));
}

/** The event is written by a process that wakes up when others have settled the matter: by then they are the racing restart. */
function frozenCases(point: CrashPoint): Made[] {
  return point.classes.map((labClass) => ({
    ...{ point: point.name, process: 'standalone', crashPoints: [point], labClass, variant: 'race' },
    run: (server) => runZombieCase(server, labClass, point, 'ACCEPT_HANG'),
  }));
}

/** `ACCEPT_HANG`: the effect is there and no answer. `HANG`: neither. */
const FROZEN_MODES = ['ACCEPT_HANG', 'HANG'] as const;

function zombieCases(): Made[] {
  return PROVIDER_CLASSES.flatMap((labClass) =>
    FROZEN_MODES.map((mode) => ({
      ...{ point: 'zombie', process: 'standalone', crashPoints: [], labClass, variant: mode },
      run: (server) => runZombieCase(server, labClass, null, mode),
    })),
  );
}

function databaseCases(): Made[] {
  return PROVIDER_CLASSES.flatMap((labClass): Made[] => [
    {
      ...{ point: 'commit_cut', process: 'standalone', crashPoints: [], labClass, variant: 'alternating' },
      run: (server) => runCutCommits(server, labClass),
    },
    {
      ...{ point: 'sessions_terminated', process: 'standalone', crashPoints: [], labClass, variant: 'under_load' },
      run: (server) => runTerminatedSessions(server, labClass),
    },
    {
      ...{ point: 'clock_skew', process: 'standalone', crashPoints: [], labClass, variant: 'ahead' },
      run: (server) => runSkewedClock(server, labClass, 1),
    },
    {
      ...{ point: 'clock_skew', process: 'standalone', crashPoints: [], labClass, variant: 'behind' },
      run: (server) => runSkewedClock(server, labClass, -1),
    },
    {
      ...{ point: 'disk_full', process: 'standalone', crashPoints: [], labClass, variant: 'under_load' },
      run: () => runFullDisk(labClass),
    },
  ]);
}
