//! Clusters over etcd, tested with third-party components. One module per subject.

mod caps;
mod faults;
mod policy;
mod qos;
