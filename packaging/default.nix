# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Package of Nix: the daemon, sutroctl and the exporter, without the kernel module. It is not
# evaluated with nixpkgs; Documentation/distributions.rst states what is tested.
#
#   pkgs.callPackage ./packaging { }
{
  lib,
  stdenv,
  inih,
  libcgroup,
  libmicrohttpd,
  meson,
  ninja,
  pkg-config,
  python3,
  systemd,
}:

stdenv.mkDerivation {
  pname = "sutro";
  version = "0.1.0";
  src = lib.cleanSource ../.;

  nativeBuildInputs = [
    meson
    ninja
    pkg-config
    python3.pkgs.wrapPython
  ];
  buildInputs = [
    inih
    libcgroup
    libmicrohttpd
    python3
    systemd
  ];
  pythonPath = [
    python3.pkgs.dbus-next
    python3.pkgs.rich
  ];

  # Latencies need a C compiler for BPF that finds the headers of libbpf and of the kernel.
  mesonFlags = [
    "--sysconfdir=${placeholder "out"}/etc"
    "--localstatedir=${placeholder "out"}/var"
    "-Dtests=false"
    "-Dexporter=enabled"
    "-Dlatency=disabled"
    "-Dzsh_completions=share/zsh/site-functions"
  ];
  postFixup = "wrapPythonPrograms";

  meta = {
    description = "Proportional disk time for systemd units on any device";
    license = lib.licenses.lgpl21Plus;
    mainProgram = "sutroctl";
    platforms = lib.platforms.linux;
  };
}
