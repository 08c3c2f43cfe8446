#!/usr/bin/env bash
# :n TOPIC #c :
#
# RFC 2812, sections 2.3.1 and 3.2.4: the last parameter may be empty, and an empty topic takes the topic of the channel away, where
# TOPIC without one asks for it. IRCv3, "Message Tags": \s is a blank, and \\ is a backslash. RFC 1459, section 2.3.1: one or more
# blanks stand between parameters.
# Guess: parsers of IRC give two parameters, "#c" and "", and two of "PRIVMSG  #c  x", whose blanks are doubled.
# Seen: irc 0.5.2 and irc-upd 0.11.0 (npm) give "#c" alone. ircv3 0.33.1 (npm) gives an empty parameter for each blank too many.
# pydle 1.2.0 (Python) drops the backslash of the tag a=b\\c. irc-framework 4.14.0 (npm) and irctokens 2.0.2 (Python) read all three.
# Bots that keep the topic do not see that it was cleared.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install irc@0.5.2 irc-upd@0.11.0 ircv3@0.33.1 irc-framework@4.14.0
pip_install pydle==1.2.0 irctokens==2.0.2
# read_line LIBRARY LINE: command and parameters, each in brackets
read_line() {
    case $1 in
        pydle) v/bin/python -c '
import sys
from pydle.features.ircv3.tags import TaggedMessage
message = TaggedMessage.parse((sys.argv[1] + "\r\n").encode())
print(message.command, "".join(f"[{parameter}]" for parameter in message.params), message.tags.get("a", ""))' "$2" ;;
        irctokens) v/bin/python -c '
import irctokens, sys
message = irctokens.tokenise(sys.argv[1])
print(message.command, "".join(f"[{parameter}]" for parameter in message.params), (message.tags or {}).get("a", ""))' "$2" ;;
        *) node -e '
            const [library, line] = process.argv.slice(1);
            const of = {
                irc: () => require("irc/lib/parse_message")(line),
                "irc-upd": () => require("irc-upd/lib/parse_message")(line),
                ircv3: () => require("ircv3").parseMessage(line),
                "irc-framework": () => require("irc-framework/src/irclineparser")(line),
            };
            const message = of[library](), tags = message.tags ?? {};
            const parameters = message.args ?? message.rawParamValues ?? message.params;
            const tag = (tags instanceof Map ? tags.get("a") : tags.a) ?? "";
            console.log(message.command, parameters.map((parameter) => `[${parameter}]`).join(""), tag);' "$1" "$2" ;;
    esac
}
for library in ircv3 irc-framework pydle irctokens; do
    seen "$library: TOPIC #c :" 'TOPIC [#c][] ' "$(read_line $library ':n TOPIC #c :')"
done
for library in irc irc-upd; do
    seen "$library: TOPIC #c :" 'TOPIC [#c] ' "$(read_line $library ':n TOPIC #c :')"
done
for library in irc irc-upd irc-framework pydle irctokens; do
    seen "$library: two blanks" 'PRIVMSG [#c][x] ' "$(read_line $library 'PRIVMSG  #c  x')"
done
seen 'ircv3: two blanks' 'PRIVMSG [][#c][][x] ' "$(read_line ircv3 'PRIVMSG  #c  x')"
for library in ircv3 irc-framework irctokens; do
    seen "$library: a tag" 'PING [x] b\c' "$(read_line $library '@a=b\\c PING x')"
done
seen 'pydle: a tag' 'PING [x] bc' "$(read_line pydle '@a=b\\c PING x')"
