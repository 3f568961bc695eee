//! The member that is talked to.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use etcd_client::{Certificate, Client, ConnectOptions, Error, Identity, TlsOptions};
use suimon_ports::{ClusterStoreError, ClusterStoreErrorKind as Kind};
use tokio::time::timeout;

use crate::explain::{explain, late};
use crate::spec::EtcdSpec;

/// So long a connection may take.
const CONNECT: Duration = Duration::from_secs(1);
/// A connection on which nothing is heard is asked for a sign of life so often.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);

struct Current {
    index: usize,
    client: Option<Client>,
}

/// All members, one of which is talked to.
pub(crate) struct Members {
    spec: EtcdSpec,
    current: Mutex<Current>,
    answered: Mutex<Option<Instant>>,
}

impl Members {
    pub(crate) fn new(spec: EtcdSpec) -> Self {
        let current = Mutex::new(Current { index: 0, client: None });
        Self { spec, current, answered: Mutex::new(None) }
    }

    pub(crate) const fn patience(&self) -> Duration {
        self.spec.patience
    }

    fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(CONNECT)
            .with_keep_alive(SIGN_OF_LIFE, SIGN_OF_LIFE * 2)
            .with_keep_alive_while_idle(true)
            .with_auto_token_refresh(true)
            .with_require_leader(true);
        if let Some((user, password)) = &self.spec.user {
            options = options.with_user(user, password);
        }
        if let Some(tls) = &self.spec.tls {
            let mut config =
                TlsOptions::new().ca_certificate(Certificate::from_pem(&tls.authorities));
            if let Some((certificate, key)) = &tls.identity {
                config = config.identity(Identity::from_pem(certificate, key));
            }
            options = options.with_tls(config);
        }
        options
    }

    /// A connection, and the member that it goes to.
    pub(crate) async fn client(&self) -> Result<(Client, String), ClusterStoreError> {
        let (member, known) = {
            let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            let endpoints = &self.spec.endpoints;
            let index = current.index % endpoints.len().max(1);
            (endpoints.get(index).cloned().unwrap_or_default(), current.client.clone())
        };
        if let Some(client) = known {
            return Ok((client, member));
        }
        // With a user this asks for a token already.
        let made = timeout(CONNECT * 2, Client::connect([&member], Some(self.options()))).await;
        let client = made
            .map_err(|_| late(&member, false))
            .and_then(|made| made.map_err(|error| explain(&member, &error, false)))?;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.client = Some(client.clone());
        Ok((client, member))
    }

    /// Somebody answered.
    pub(crate) fn hear(&self) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(crate) fn age(&self) -> Option<Duration> {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.map(|at| at.elapsed())
    }

    /// Goes on to the next member, if this one is still the one that is talked to.
    pub(crate) fn leave(&self, member: &str) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let endpoints = &self.spec.endpoints;
        let index = current.index % endpoints.len().max(1);
        if endpoints.get(index).is_some_and(|current| current == member) {
            (current.index, current.client) = (index + 1, None);
        }
    }

    /// Asks a member. With `is_change` it is asked once, otherwise the next one too, until somebody
    /// answers or patience ends.
    pub(crate) async fn ask<T, F>(
        &self,
        is_change: bool,
        question: impl Fn(Client) -> F,
    ) -> Result<T, ClusterStoreError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let began = Instant::now();
        loop {
            let left = self.spec.patience.saturating_sub(began.elapsed());
            let (error, was_asked) = match self.client().await {
                Err(error) => (error, false),
                Ok((client, member)) => {
                    // A member that hangs leaves time for another.
                    let share = if is_change { left } else { left.min(self.spec.patience / 3) };
                    match timeout(share, question(client)).await {
                        Ok(Ok(answer)) => {
                            self.hear();
                            return Ok(answer);
                        }
                        Ok(Err(error)) => (explain(&member, &error, is_change), true),
                        Err(_) => (late(&member, is_change), true),
                    }
                }
            };
            if !matches!(error.kind, Kind::Unreachable | Kind::OutcomeUnknown) {
                return Err(error);
            }
            let member = error.detail.split(": ").next().unwrap_or_default().to_owned();
            self.leave(&member);
            if (is_change && was_asked) || began.elapsed() + PAUSE >= self.spec.patience {
                return Err(error);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
