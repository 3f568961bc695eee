//! The README, tutorials and how-to guides: each page is executed as a reader would execute it.

mod expectation;
mod host;
mod page;
mod pages;
mod runner;
mod shell;
