import type { FastifyInstance } from 'fastify';

/** The paths there are and their methods, so that a request with the wrong method is told so and not that there is nothing. */
export class RouteTable {
  private readonly routes = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>();

  add(path: string, methods: readonly string[]): void {
    const route = this.routes.get(path) ?? { pattern: patternOf(path), methods: new Set() };
    for (const method of methods) route.methods.add(method);
    this.routes.set(path, route);
  }

  /** Methods that the path of a URL is served with; empty where there is no such path. */
  methodsOf(url: string): string[] {
    const [path = ''] = url.split('?', 1);
    const methods = [...this.routes.values()].filter(({ pattern }) => pattern.test(path)).flatMap((route) => [...route.methods]);
    return [...new Set(methods)].sort();
  }
}

/** Has to be called before the routes are made. */
export function recordRoutes(fastify: FastifyInstance): RouteTable {
  const table = new RouteTable();
  fastify.addHook('onRoute', ({ url, method }) => table.add(url, [method].flat()));
  return table;
}

function patternOf(path: string): RegExp {
  const segments = path.split('/').map((segment) => (segment.startsWith(':') ? '[^/]+' : segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')));
  return new RegExp(`^${segments.join('/')}$`);
}
