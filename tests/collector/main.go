// A collector for tests: the OTLP receiver of OpenTelemetry's collector. It writes the address that it listens on, and
// then a line for each request: the spans as OTLP's JSON.
package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func main() {
	// A port that is free now.
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	address := probe.Addr().String()
	check(probe.Close())

	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.Protocols.GRPC = configoptional.None[configgrpc.ServerConfig]()
	config.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = address

	written := ptrace.JSONMarshaler{}
	sink, err := consumer.NewTraces(func(_ context.Context, spans ptrace.Traces) error {
		line, err := written.MarshalTraces(spans)
		if err == nil {
			fmt.Println(string(line))
		}
		return err
	})
	check(err)
	settings := receivertest.NewNopSettings(factory.Type())
	receiver, err := factory.CreateTraces(context.Background(), settings, config, sink)
	check(err)
	var host component.Host = componenttest.NewNopHost()
	check(receiver.Start(context.Background(), host))
	fmt.Println(address)
	// It ends with the test, which holds the other end.
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
