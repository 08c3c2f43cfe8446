#!/usr/bin/env bash
# % a line of the editor
# 1. e4 e5 *
#
# "Portable Game Notation Specification", section 6: a line whose first character is a percent sign is passed over. Section 5: a
# semicolon begins a comment to the end of the line. Section 7: a quote and a backslash within a string stand behind a backslash.
# Guess: libraries for PGN read all three.
# Seen: chess.js 1.4.0, @mliebelt/pgn-parser 1.4.19, @jackstenglein/pgn-parser 2.0.13, cm-pgn 5.0.0 and pgn-parser 2.2.1 (npm) give an
# error for the percent sign. chess.js and pgn-parser give one for an escaped quote, at which cm-pgn cuts the string, and which
# chess 1.11.2 (Python) leaves with its backslash. cm-pgn gives one for a semicolon, and for moves in lines that end with CR LF.
# A file in which one game is so written cannot be read at all.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install chess.js@1.4.0 @mliebelt/pgn-parser@1.4.19 @jackstenglein/pgn-parser@2.0.13 cm-pgn@5.0.0 pgn-parser@2.2.1
pip_install chess==1.11.2
cat >read.mjs <<'JS'
import { createRequire } from "module";
import { readFileSync } from "fs";
const require = createRequire(import.meta.url), library = process.argv[2], text = readFileSync("game", "latin1");
const moves = (list) => list.map((move) => move.notation?.notation ?? move.san ?? move.move).join(" ");
const read = {
    "chess.js": () => {
        const game = new (require(library).Chess)();
        game.loadPgn(text);
        return [game.getHeaders().Event, game.history().join(" ")];
    },
    "pgn-parser": () => {
        const [game] = require(library).parse(text);
        return [game.headers[0].value, moves(game.moves)];
    },
    "cm-pgn": async () => {
        const { Pgn } = await import("cm-pgn/src/Pgn.js"), game = new Pgn(text);
        return [game.header.tags.Event, moves(game.history.moves)];
    },
};
const other = async () => {
    const found = await import(library), [game] = (found.parse ?? found.default.parse)(text, { startRule: "games" });
    return [game.tags.Event, moves(game.moves)];
};
try {
    console.log((await (read[library] ?? other)()).join(": "));
} catch {
    console.log("error");
}
JS
# read_game LIBRARY: the event and the moves of ./game
read_game() {
    if [[ $1 == chess ]]; then
        v/bin/python -c '
import chess.pgn
game = chess.pgn.read_game(open("game"))
print(game.headers["Event"] + ": " + " ".join(node.san() for node in game.mainline()))'
    else
        node read.mjs "$1"
    fi
}
# each GAME CHESS CHESS.JS MLIEBELT JACKSTENGLEIN CM-PGN PGN-PARSER
each() {
    local library text=$1
    printf '%b' "$text" >game
    for library in chess chess.js @mliebelt/pgn-parser @jackstenglein/pgn-parser cm-pgn pgn-parser; do
        shift
        seen "$library: ${text#*]}" "$1" "$(read_game $library)"
    done
}
M='a: e4 e5'
each '[Event "a"]\n\n1. e4 e5 *\n' "$M" "$M" "$M" "$M" "$M" "$M"
each '[Event "a"]\n\n% b\n1. e4 e5 *\n' "$M" error error error error error
each '[Event "a"]\n\n1. e4 ; b\n1... e5 *\n' "$M" "$M" "$M" "$M" error "$M"
each '[Event "a"]\r\n\r\n1. e4\r\ne5 *\r\n' "$M" "$M" "$M" "$M" error "$M"
each '[Event "a \\"b\\""]\n\n1. e4 e5 *\n' 'a \"b\": e4 e5' error 'a "b": e4 e5' 'a "b": e4 e5' 'a \: e4 e5' error
