//! Adapters with virtual functions, tested with third-party components. One module per subject.

mod adapters;
mod moving;
mod nics;
