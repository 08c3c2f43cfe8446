#!/usr/bin/env bash
# RUN <<EOF, two lines of a script, EOF
#
# The reference of Dockerfiles, "Here-documents": the lines up to the name alone are a script for RUN, or the content of a file
# for COPY. They are there since 2021, without a line `# syntax`.
# Guess: libraries for these files give one instruction.
# Seen: docker-file-parser 1.0.7 (npm) and dockerfile-parse 2.0.1 (Python) take each line for an instruction, ECHO and EOF, and
# a line `run no` within a file for RUN. docker-file-parser also keeps the quotes around names and values of labels.
# dockerfile-ast 0.7.1 (npm) gives one instruction.
# A check of such files finds instructions that are not there, and misses the script.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >Dockerfile <<'FILE'
FROM a
LABEL "b.c"="d e"
RUN <<EOF
echo f
EOF
COPY <<EOF /g
run no
EOF
FILE
npm_install docker-file-parser@1.0.7 dockerfile-ast@0.7.1
js() {
    node -p '
        const text = fs.readFileSync("Dockerfile", "utf8");
        const { DockerfileParser } = require("dockerfile-ast");
        const found = process.argv[1] === "ast"
            ? DockerfileParser.parse(text).getInstructions().map((one) => one.getKeyword())
            : require("docker-file-parser").parse(text).map((one) => one.name);
        found.join(" ")' "$1"
}
seen docker-file-parser 'FROM LABEL RUN ECHO EOF COPY RUN EOF' "$(js parser)"
seen 'docker-file-parser: the label' '{"\"b.c\"":"\"d e\""}' "$(node -p '
    JSON.stringify(require("docker-file-parser").parse(fs.readFileSync("Dockerfile", "utf8"))[1].args)')"
seen dockerfile-ast 'FROM LABEL RUN COPY' "$(js ast)"

pip_install dockerfile-parse==2.0.1
seen dockerfile-parse 'FROM LABEL RUN ECHO EOF COPY RUN EOF' "$(v/bin/python -c '
from dockerfile_parse import DockerfileParser
print(*(one["instruction"] for one in DockerfileParser("Dockerfile").structure))')"
