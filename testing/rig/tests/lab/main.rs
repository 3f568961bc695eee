//! The lab, tested with third-party components. One module per subject.

mod ends;
mod experiments;
