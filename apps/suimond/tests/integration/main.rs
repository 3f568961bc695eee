//! Integration tests, one module per subject. A single program reduces link time.

mod access;
mod api;
mod arrivals;
mod connections;
mod console;
mod endpoints;
mod failed_listeners;
mod far_nodes;
mod host_file;
mod hostile_clients;
mod mirroring;
mod offloads;
mod process;
mod renames;
mod startup_errors;
mod support;
mod tcp;
