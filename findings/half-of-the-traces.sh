#!/usr/bin/env bash
# OTEL_TRACES_SAMPLER=traceidratio, with 0.5
#
# OpenTelemetry, "Tracing SDK", TraceIdRatioBased: the decision is a function of the trace's identifier alone, so that all
# parts of a trace, in whatever program, are sampled or none is. The exact function is left open there.
# Guess: the SDKs of the project choose the same half.
# Seen: opentelemetry-sdk 1.45.2 (Python) and Go 1.47.0 go by the last 8 bytes. @opentelemetry/sdk-trace-base 2.12.1 (npm) mixes
# all 16, and so decides otherwise about every second trace: of the ten here, about four.
# Where each program decides for itself, half of the traces that a service in Node shares with others are torn.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

TRACES=(5bc8fbbcbde5c0994164d8399f767c45 d76d4330f1446beab0c11fdecb91ce37 87b0b125ec1d7da0a6eb8c9ebd69fe29
    c6a5387777330bdbd7210dff076ce2ef 0d464138a62332553fc1ea36f17fd374 5f2dd97f1cfb10f62827688de6a16a3b
    617959ce3f1f65a8de5271007814e8a2 3fd4235992edcf451a1afe878b33e968 687c966c377b9aa2bb2edb20035b7399
    de11cc9dea959c212e9c82b1478c281d)
pip_install opentelemetry-sdk==1.45.2
npm_install @opentelemetry/sdk-trace-base@2.12.1
cat >go.mod <<'GO'
module finding
go 1.26
require go.opentelemetry.io/otel/sdk v1.47.0
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

func main() {
	sampler := trace.TraceIDRatioBased(0.5)
	for _, text := range os.Args[1:] {
		id, err := api.TraceIDFromHex(text)
		if err != nil {
			panic(err)
		}
		asked := trace.SamplingParameters{ParentContext: context.Background(), TraceID: id}
		if sampler.ShouldSample(asked).Decision == trace.RecordAndSample {
			fmt.Print("+")
		} else {
			fmt.Print("-")
		}
	}
}
GO
go mod tidy 2>/dev/null
seen 'Python' '+---++-+-+' "$(v/bin/python -c '
import sys
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
sampler = TraceIdRatioBased(0.5)
decisions = (sampler.should_sample(None, int(trace, 16), "x").decision for trace in sys.argv[1:])
print("".join("+" if decision.is_sampled() else "-" for decision in decisions))' "${TRACES[@]}")"
seen 'Go' '+---++-+-+' "$(go run . "${TRACES[@]}")"
seen 'JavaScript' '+++++--+-+' "$(node -p '
const { SamplingDecision, TraceIdRatioBasedSampler } = require("@opentelemetry/sdk-trace-base");
const sampler = new TraceIdRatioBasedSampler(0.5);
process.argv.slice(1).map(trace =>
    sampler.shouldSample({}, trace).decision === SamplingDecision.RECORD_AND_SAMPLED ? "+" : "-").join("")' "${TRACES[@]}")"
