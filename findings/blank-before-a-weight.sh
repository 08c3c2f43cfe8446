#!/usr/bin/env bash
# Accept-Language: en; q=0.5, de
#
# RFC 9110, section 12.4.2: a weight is `OWS ";" OWS "q=" qvalue`, so blanks may stand on both sides of the semicolon,
# and a weight of 0 means "not acceptable".
# Guess: a library for this one field reads en with 0.5 and de with 1, and never picks a language of weight 0.
# Seen: accept-language-parser 1.5.0 (npm) reads three languages: en, q and de, each of weight 1. It picks English for a
# client that asks for German first, and English for one whose only word about it is q=0. intl-parse-accept-language
# 1.0.0 (npm) sorts de before en.
# A site that chooses by this library answers a client that writes the blank in a language that it ranks last.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install accept-language-parser@1.5.0 intl-parse-accept-language@1.0.0
read_field() {
    node -p '
        const found = require("accept-language-parser").parse(process.argv[1]);
        found.map(({ code, quality }) => code + "=" + quality).join(" ")' "$1"
}
pick() {
    node -p 'require("accept-language-parser").pick(["en", "de"], process.argv[1])' "$1"
}
sort_field() {
    node -p 'require("intl-parse-accept-language").parseAcceptLanguage(process.argv[1]).join(" ")' "$1"
}
seen 'accept-language-parser: en;q=0.5, de' 'de=1 en=0.5' "$(read_field 'en;q=0.5, de')"
seen 'accept-language-parser: en; q=0.5, de' 'en=1 q=1 de=1' "$(read_field 'en; q=0.5, de')"
seen 'accept-language-parser, picked' de "$(pick 'en;q=0.5, de')"
seen 'accept-language-parser, with the blank' en "$(pick 'en; q=0.5, de')"
seen 'accept-language-parser: fr, en;q=0' en "$(pick 'fr, en;q=0')"
seen 'intl-parse-accept-language' 'de en' "$(sort_field 'en; q=0.5, de')"
