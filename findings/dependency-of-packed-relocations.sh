#!/usr/bin/env bash
# gcc -Wl,-z,pack-relative-relocs
#
# glibc 2.36 is the first that can start a program with packed addresses (DT_RELR), so the linker notes its version
# GLIBC_ABI_DT_RELR among those that the program needs. The list of symbols of Debian's libc6 has it, with 2.36.
# Guess: dpkg-shlibdeps writes libc6 (>= 2.36) for such a program.
# Seen: dpkg-shlibdeps of dpkg 1.21.23 writes libc6 (>= 2.34), as for the same program without. It asks for the versions of
# the symbols in use, and no symbol is of this one. elfdeps of rpm 4.18.0 names it.
# A package for several releases is installed on an older one, where its program does not start; its maker has to name
# the version of libc6.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install dpkg-dev=1.21.23 libdpkg-perl=1.21.23 rpm=4.18.0+dfsg-1+deb12u1 librpm9 librpmio9 librpmbuild9
echo 'int puts(const char *); int main(void) { return puts("hello") < 0; }' >a.c
gcc -o as_usual a.c
gcc -Wl,-z,pack-relative-relocs -o packed a.c
mkdir debian
printf '%s\n' 'Source: a' 'Maintainer: a <a@a.example>' '' 'Package: a' 'Architecture: any' >debian/control
needs() {
    PERL5LIB=root/usr/share/perl5 root/usr/bin/dpkg-shlibdeps -O "./$1" 2>/dev/null
}
relr_of_rpm() {
    echo "$1" | root/usr/lib/rpm/elfdeps -R | grep -o 'GLIBC_ABI[A-Z_]*' || true
}
seen 'a packed table in the program' 1 "$(readelf -d packed | grep -cw RELR)"
seen 'the list of symbols' 'GLIBC_ABI_DT_RELR 2.36' \
    "$(sed -n 's/^.*@\(GLIBC_ABI_DT_RELR .*\)/\1/p' "$(dpkg-query --control-path libc6 symbols)")"
seen 'dpkg-shlibdeps: as usual' 'shlibs:Depends=libc6 (>= 2.34)' "$(needs as_usual)"
seen 'dpkg-shlibdeps: packed' 'shlibs:Depends=libc6 (>= 2.34)' "$(needs packed)"
seen 'rpm: as usual' '' "$(relr_of_rpm as_usual)"
seen 'rpm: packed' GLIBC_ABI_DT_RELR "$(relr_of_rpm packed)"
