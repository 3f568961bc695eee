//! The web console, tested with third-party components. One module per subject.

mod pages;
