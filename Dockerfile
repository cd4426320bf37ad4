# One image for every service; the command says which. Built in two steps, so that neither sources nor development packages are in it.
FROM node:20.20.2-bookworm-slim AS build
WORKDIR /onefold
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY apps apps
COPY libs libs
COPY bench bench
COPY stack stack
COPY proof proof
RUN npm run build && npm prune --omit=dev --omit=optional --ignore-scripts

FROM node:20.20.2-bookworm-slim
ENV NODE_ENV=production
WORKDIR /onefold
COPY --from=build /onefold/package.json ./
COPY --from=build /onefold/node_modules node_modules
COPY --from=build /onefold/dist/apps dist/apps
COPY --from=build /onefold/dist/libs dist/libs
# Read as text by the migration, so the compiler does not carry it over.
COPY libs/adapters/src/postgres/migrations libs/adapters/src/postgres/migrations
COPY onefold.yaml ./
USER node
EXPOSE 3000
CMD ["node", "dist/apps/command-api/src/main.js"]
