//! Conversion of errors of the etcd client to [`ClusterStoreError`].

use etcd_client::Error;
use suimon_ports::{ClusterStoreError, ClusterStoreErrorKind as Kind};

/// gRPC status codes without a definite result: cancelled, unknown, deadline exceeded, unavailable.
const UNANSWERED: [i32; 4] = [1, 2, 4, 14];

/// Converts an error of the member with the URL `member`. If `is_change` is true and the error
/// leaves open whether the request was executed, the result is `OutcomeUnknown`; otherwise it is
/// `Unreachable`.
pub(crate) fn convert_error(member: &str, error: &Error, is_change: bool) -> ClusterStoreError {
    let unanswered = if is_change { Kind::OutcomeUnknown } else { Kind::Unreachable };
    let (kind, advice) = match error {
        Error::GRpcStatus(status) => by_status(status.message(), status.code() as i32, unanswered),
        Error::TransportError(_) | Error::IoError(_) | Error::EndpointError(_) => (
            unanswered,
            "check that this member of etcd runs, and its address and the certificates of both \
             sides",
        ),
        _ => (Kind::Refused, "see the log of etcd"),
    };
    ClusterStoreError { kind, detail: format!("{member}: {}; {advice}", describe(error)) }
}

/// Creates the error of a request that `member` did not reply to in time. Parameters as for
/// [`convert_error`].
pub(crate) fn timeout_error(member: &str, is_change: bool) -> ClusterStoreError {
    let kind = if is_change { Kind::OutcomeUnknown } else { Kind::Unreachable };
    let detail =
        format!("{member}: no reply in time; check that this member of etcd runs and has a leader");
    ClusterStoreError { kind, detail }
}

/// Returns true if a response exceeded the size that this client accepts (gRPC status 11, out of
/// range).
pub(crate) fn is_too_large(error: &Error) -> bool {
    matches!(error, Error::GRpcStatus(status) if status.code() as i32 == 11)
}

fn by_status(message: &str, code: i32, unanswered: Kind) -> (Kind, &'static str) {
    let contains_any = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
    if contains_any(&[
        "authentication failed",
        "permission denied",
        "invalid auth token",
        "user name is empty",
    ]) {
        return (
            Kind::NotAllowed,
            "correct the user and password, or grant the etcd user the role",
        );
    }
    if contains_any(&["database space exceeded", "too many operations", "request is too large"]) {
        return (
            Kind::Full,
            "compact and defragment etcd, raise its quota, or send smaller requests",
        );
    }
    if contains_any(&["message length too large"]) {
        let advice = "the response is larger than this daemon accepts; remove nodes or stores that \
                      the cluster does not need";
        return (Kind::Refused, advice);
    }
    if contains_any(&["requested lease not found"]) {
        return (Kind::LeaseEnded, "acquire another lease");
    }
    if contains_any(&[
        "no leader",
        "leader changed",
        "request timed out",
        "not enough started members",
    ]) || UNANSWERED.contains(&code)
    {
        return (unanswered, "check that most members of etcd run and reach each other");
    }
    (Kind::Refused, "see the log of etcd")
}

fn describe(error: &Error) -> String {
    let mut text = match error {
        Error::GRpcStatus(status) => status.message().to_owned(),
        other => other.to_string(),
    };
    let mut source = match error {
        // The error type has no source; that of the gRPC status names the cause.
        Error::GRpcStatus(status) => std::error::Error::source(status),
        other => std::error::Error::source(other),
    };
    while let Some(cause) = source {
        let cause_words = cause.to_string();
        if !text.contains(&cause_words) {
            text = format!("{text}: {cause_words}");
        }
        source = cause.source();
    }
    text
}
