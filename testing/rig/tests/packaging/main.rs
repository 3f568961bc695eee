//! Debian package and systemd, tested with third-party components. One module per subject.

mod package;
mod systemd;
