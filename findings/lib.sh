# Shared by the scripts of this folder; sourced, never run.
# shellcheck shell=bash

set -euo pipefail
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
cd "$FOLDER"
export GOMODCACHE=$FOLDER/modules GOFLAGS=-modcacherw # modules of Go, too, are removed at the end

# pip_install PACKAGE==VERSION...: a virtual environment in ./v
pip_install() {
    python3 -m venv v
    v/bin/pip --quiet --disable-pip-version-check install "$@"
}

# npm_install PACKAGE@VERSION...
npm_install() {
    npm init --yes >/dev/null
    npm install --silent --no-audit --no-fund "$@"
}

# maven_install GROUP:ARTIFACT:VERSION...: the jars, and those that they need, in ./jars
maven_install() {
    local package group artifact version
    {
        echo '<project><modelVersion>4.0.0</modelVersion>'
        echo '<groupId>a</groupId><artifactId>a</artifactId><version>1</version><dependencies>'
        for package; do
            IFS=: read -r group artifact version <<<"$package"
            echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId>"
            echo "<version>$version</version></dependency>"
        done
        echo '</dependencies></project>'
    } >pom.xml
    mvn --quiet --batch-mode -Dmaven.repo.local="$FOLDER/maven" -DoutputDirectory=jars \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies &>maven.log || cat maven.log
}

# debian_install PACKAGE[=VERSION]...: the files of these packages of Debian 12, and of no others, in ./root
debian_install() {
    local package
    apt-get -o APT::Sandbox::User=root download --quiet=2 "$@" # the folder is closed to _apt
    for package in *.deb; do
        dpkg -x "$package" root
        rm "$package"
    done
    export LD_LIBRARY_PATH=$FOLDER/root/usr/lib/x86_64-linux-gnu:$FOLDER/root/lib/x86_64-linux-gnu
}

# seen WHAT EXPECTED FOUND: prints FOUND, and ends with an error if it is not EXPECTED.
seen() {
    printf '%-44s %s\n' "$1" "$3"
    if [[ $2 != "$3" ]]; then
        echo "changed: it was $2" >&2
        exit 1
    fi
}
