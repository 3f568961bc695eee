//! Keys of `[cluster]`.

use crate::key::{optional, required};
use crate::{ChangeEffect, Form, Key, ResourceKind};

/// Largest number of etcd endpoints: twice the largest recommended number of members (7 according
/// to etcd's documentation), rounded up.
const ENDPOINTS_MAX: usize = 16;
const USER_BYTES_MAX: usize = 255;

pub(crate) const CLUSTER: &[Key] = &[
    required("name", Form::Name, ChangeEffect::AfterLeavingCluster),
    required("node", Form::Name, ChangeEffect::AfterLeavingCluster),
    required("endpoints", Form::Urls { max: ENDPOINTS_MAX }, ChangeEffect::Live),
    optional("tls", Form::Table(ResourceKind::ClusterTls), ChangeEffect::Live),
    optional("user", Form::SingleLineText { max: USER_BYTES_MAX }, ChangeEffect::Live),
    optional("password_file", Form::FilePath, ChangeEffect::Live),
];

pub(crate) const CLUSTER_TLS: &[Key] = &[
    required("ca_certificate", Form::FilePath, ChangeEffect::Live),
    optional("certificate", Form::FilePath, ChangeEffect::Live),
    optional("key", Form::FilePath, ChangeEffect::Live),
];
