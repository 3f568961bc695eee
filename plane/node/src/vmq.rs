//! VMQ: what drives it, and how it stands.

mod status;
