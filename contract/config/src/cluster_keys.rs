//! Keys of `[cluster]`.

use crate::key::{optional, required};
use crate::{Effect, Form, Key, Kind};

/// Twice the largest recommended number of members (7 according to etcd's documentation), rounded
/// up.
const ENDPOINTS_MAX: usize = 16;
const USER_BYTES_MAX: usize = 255;

pub(crate) const CLUSTER: &[Key] = &[
    required("name", Form::Name, Effect::Live),
    required("node", Form::Name, Effect::Live),
    required("endpoints", Form::Urls { most: ENDPOINTS_MAX }, Effect::Live),
    optional("tls", Form::Table(Kind::ClusterTls), Effect::Live),
    optional("user", Form::Line { most: USER_BYTES_MAX }, Effect::Live),
    optional("password_file", Form::FilePath, Effect::Live),
];

pub(crate) const CLUSTER_TLS: &[Key] = &[
    required("ca_certificate", Form::FilePath, Effect::Live),
    optional("certificate", Form::FilePath, Effect::Live),
    optional("key", Form::FilePath, Effect::Live),
];
