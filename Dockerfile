# A tag can be moved: .github/renovate.json has the image that builds pinned by its digest,
# and `make release-check` fails without it.
# The builder runs on the machine's own architecture and compiles for the target's.
FROM --platform=$BUILDPLATFORM golang:1.26 AS builder
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY api/ api/
COPY cmd/ cmd/
COPY config/ config/
COPY internal/ internal/
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=dev
# The same sources and version make the same bytes: no paths, no times, no build id.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags "-s -w -buildid= -X main.version=$VERSION" \
    -o /rollout-controller ./cmd/controller
# The page, which runs as a Deployment of its own.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags "-s -w -buildid= -X main.version=$VERSION" \
    -o /rollout-web ./cmd/rollout-web

# Nothing but the programs, which have the time zones in them, and whom they trust.
FROM scratch
ARG VERSION=dev
ARG REVISION=
LABEL org.opencontainers.image.title="rollout-controller" \
      org.opencontainers.image.description="Promotes releases that Flux finds into the Flux objects that deploy them." \
      org.opencontainers.image.source="https://github.com/fluxrollouts/rollout-controller" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=builder /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=builder /rollout-controller /rollout-controller
COPY --from=builder /rollout-web /rollout-web
USER 65532:65532
ENTRYPOINT ["/rollout-controller"]
