//! Integration tests, one module per subject. A single program reduces link time.

mod libvirt_schema;
