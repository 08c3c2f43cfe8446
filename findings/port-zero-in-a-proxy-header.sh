#!/usr/bin/env bash
# PROXY TCP4 192.0.2.1 192.0.2.2 0 443
#
# The PROXY protocol (haproxy.org), section 2.1: a port is a decimal number from 0 to 65535, both of them included.
# Guess: the decoder of Netty takes each of these ports.
# Seen: netty-codec-haproxy 4.1.115 (Java) refuses a line with the port 0, which its own encoder writes, and reads 0 in the binary form.
# A health check, or a proxy in front of a socket without ports, that has none to state loses its connection in one of the two versions.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

maven_install io.netty:netty-codec-haproxy:4.1.115.Final
cat >Read.java <<'JAVA'
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.handler.codec.haproxy.*;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

public class Read {
    static String read(String text) {
        byte[] bytes = text.startsWith("PROXY") ? (text + "\r\n").getBytes() : HexFormat.of().parseHex("0d0a0d0a000d0a515549540a" + text);
        EmbeddedChannel channel = new EmbeddedChannel(new HAProxyMessageDecoder());
        channel.writeInbound(Unpooled.wrappedBuffer(bytes));
        HAProxyMessage message = channel.readInbound();
        return message.sourceAddress() + " " + message.sourcePort();
    }

    static String written() {
        EmbeddedChannel channel = new EmbeddedChannel(HAProxyMessageEncoder.INSTANCE);
        channel.writeOutbound(new HAProxyMessage(HAProxyProtocolVersion.V1, HAProxyCommand.PROXY, HAProxyProxiedProtocol.TCP4,
            "192.0.2.1", "192.0.2.2", 0, 443));
        return ((ByteBuf) channel.readOutbound()).toString(StandardCharsets.US_ASCII).strip();
    }

    public static void main(String[] texts) {
        for (String text : texts) {
            try {
                System.out.println(text.equals("write") ? written() : read(text));
            } catch (HAProxyProtocolException error) {
                System.out.println("refused");
            }
        }
    }
}
JAVA
# each COMMAND CASE EXPECTED...: COMMAND runs once, with all cases, and prints a line for each
each() {
    local command cases=() expected=() found i
    read -ra command <<<"$1"
    shift
    while (($#)); do
        cases+=("$1")
        expected+=("$2")
        shift 2
    done
    mapfile -t found < <("${command[@]}" "${cases[@]}")
    for i in "${!cases[@]}"; do seen "${command[*]:1} ${cases[i]}" "${expected[i]}" "${found[i]-}"; done
}
each 'java -cp jars/* Read.java' \
    'PROXY TCP4 192.0.2.1 192.0.2.2 1 443' '192.0.2.1 1' \
    'PROXY TCP4 192.0.2.1 192.0.2.2 0 443' refused \
    '2111000cc0000201c0000202000101bb' '192.0.2.1 1' \
    '2111000cc0000201c0000202000001bb' '192.0.2.1 0' \
    write 'PROXY TCP4 192.0.2.1 192.0.2.2 0 443'
