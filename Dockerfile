# One image for every part: it runs "vitrina api", "vitrina runner", "vitrina migrate", and every other command.
# Health checks are in deploy/, because API and runner need different ones.

# Both can be replaced, by a mirror's name or a digest.
ARG NODE_IMAGE=node:24-bookworm-slim
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY scripts/prepare.mjs scripts/
RUN node scripts/prepare.mjs --only-install
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN node scripts/prepare.mjs

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# Optional is the embedded PostgreSQL, which no container needs.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

# Not the Node.js image: that one brings package managers along.
FROM ${BASE_IMAGE} AS runtime
# For tasks in Python: --build-arg WITH_PYTHON=yes
ARG WITH_PYTHON=no
RUN if [ "$WITH_PYTHON" = yes ]; then \
      apt-get update && apt-get install -y --no-install-recommends python3 && rm -rf /var/lib/apt/lists/*; \
    fi
RUN groupadd --gid 10001 vitrina && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin vitrina
COPY --from=dependencies /usr/local/bin/node /usr/local/bin/node
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./
COPY bin bin
COPY python python
COPY examples examples
RUN ln -s /app/bin/vitrina.mjs /usr/local/bin/vitrina
ENV NODE_ENV=production
# By number, so that Kubernetes can see that it is not root.
USER 10001:10001
ENTRYPOINT ["vitrina"]
CMD ["--help"]
