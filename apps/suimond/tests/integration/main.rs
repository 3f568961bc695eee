//! Integration tests of this crate, one module per subject. One program, because linking
//! takes most of the time that a test program costs.

mod api;
mod arrivals;
mod connections;
mod console;
mod far_nodes;
mod hostile_clients;
mod mirroring;
mod offloads;
mod process;
mod startup_errors;
mod support;
mod tcp;
