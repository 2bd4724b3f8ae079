# ./dev package: Debian packages from what is committed or lies in the worktree, without touching it; lintian; a try.
# shellcheck shell=bash

library_package=libmica0.2 # as its soname
mpi_package=libmica-mpi0.2

# The changelog, which names the packages' version, and the header, which names the library's, agree.
version_agrees() {
    local changelog header
    changelog=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
    header=$(sed -n 's/^#define MICA_VERSION_[A-Z]* //p' include/mica/base.h | paste -sd .)
    [ "$changelog" = "$header" ] || {
        echo "debian/changelog says $changelog, include/mica/base.h says $header"
        return 1
    }
}

# The packages, built from a copy of the tracked files, into build/package.
build_packages() {
    local source=build/package/mica
    rm -rf build/package
    mkdir -p "$source"
    git ls-files -z --cached --others --exclude-standard | tar --null -T - -c | tar -x -C "$source"
    (cd "$source" && dpkg-buildpackage -us -uc -b -j"$(nproc)")
    rm -rf "$source"
}

# Names a package by the path of its file.
package_file() { compgen -G "build/package/$1_*.deb"; }

lint_packages() { lintian --fail-on error --suppress-tags bad-distribution-in-changes-file build/package/*.changes; }

# Unpacks them into one folder, as an installation would, and uses that.
try_packages() {
    local package
    rm -rf build/package/root
    for package in "$library_package" "$mpi_package" libmica-dev mica; do
        dpkg-deb -x "$(package_file $package)" build/package/root
    done
    tests/install/check.sh build/package build/package/root/usr
}

depends_on() { dpkg-deb -f "$(package_file "$1")" Depends | grep -q "$2"; }

build_package() {
    need build package debian
    say "Debian packages"
    check "the changelog has the header's version" version_agrees
    check "build" build_packages
    if [ -e "$(package_file mica)" ]; then
        check "lintian finds no error" lint_packages
        check "C and C++ programs, the command, its pages" try_packages
        check "$library_package asks for libc" depends_on "$library_package" libc6
        check "$mpi_package asks for MPI" depends_on "$mpi_package" libopenmpi
        check "libmica-dev asks for $library_package" depends_on libmica-dev "$library_package (="
        ls -l build/package/*.deb
    fi
    finish
}
