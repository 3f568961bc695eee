//! Selection of the etcd member that receives requests.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use etcd_client::{Channel, Client, ConnectOptions, Error};
use suimon_lookups::Lookups;
use suimon_ports::{ClusterStoreError, ClusterStoreErrorKind as Kind};
use tokio::time::timeout;

use crate::channel::{CONNECT_TIMEOUT, lazy_channel};
use crate::errors::{convert_error, timeout_error};
use crate::spec::EtcdSpec;

/// Pause between two attempts to send a request.
const PAUSE: Duration = Duration::from_millis(50);

struct Current {
    index: usize,
    client: Option<Client>,
}

/// Members of the etcd cluster. All requests go to the selected one, until it fails.
pub(crate) struct Members {
    spec: EtcdSpec,
    lookups: Lookups,
    current: Mutex<Current>,
    last_reply_at: Mutex<Option<Instant>>,
}

impl Members {
    pub(crate) fn new(spec: EtcdSpec, lookups: Lookups) -> Self {
        let current = Mutex::new(Current { index: 0, client: None });
        Self { spec, lookups, current, last_reply_at: Mutex::new(None) }
    }

    pub(crate) const fn timeout(&self) -> Duration {
        self.spec.timeout
    }

    /// Creates a client of the member with this URL. If a user is configured, requests an
    /// authentication token at once.
    async fn connect(&self, member: &str) -> Result<Client, Error> {
        let mut options =
            ConnectOptions::new().with_auto_token_refresh(true).with_require_leader(true);
        if let Some((user, password)) = &self.spec.credentials {
            options = options.with_user(user, password);
        }
        let channel = lazy_channel(member, self.spec.tls.as_ref(), &self.lookups)?;
        Client::from_channel(Channel::Tonic(channel), Some(options)).await
    }

    /// Returns a client of the selected member, and the URL of the member. Connects if necessary.
    ///
    /// # Errors
    /// The member does not respond within twice [`CONNECT_TIMEOUT`], or rejects the credentials.
    pub(crate) async fn client(&self) -> Result<(Client, String), ClusterStoreError> {
        let (selected, member, cached) = {
            let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            let endpoints = &self.spec.endpoints;
            let index = current.index % endpoints.len().max(1);
            let member = endpoints.get(index).cloned().unwrap_or_default();
            (current.index, member, current.client.clone())
        };
        if let Some(client) = cached {
            return Ok((client, member));
        }
        let result = timeout(CONNECT_TIMEOUT * 2, self.connect(&member)).await;
        let client = result.map_err(|_| timeout_error(&member, false)).and_then(|connection| {
            connection.map_err(|error| convert_error(&member, &error, false))
        })?;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // Another task may have switched to the next member meanwhile.
        if current.index == selected {
            current.client = Some(client.clone());
        }
        Ok((client, member))
    }

    /// Records the current time as the time of the last response of any member.
    pub(crate) fn record_reply(&self) {
        *self.last_reply_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(crate) fn time_since_reply(&self) -> Option<Duration> {
        let last_reply = self.last_reply_at.lock().unwrap_or_else(PoisonError::into_inner);
        last_reply.map(|time| time.elapsed())
    }

    /// Switches to the next member, if `member` is still the selected one.
    pub(crate) fn switch_member(&self, member: &str) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let endpoints = &self.spec.endpoints;
        let index = current.index % endpoints.len().max(1);
        if endpoints.get(index).is_some_and(|current| current == member) {
            (current.index, current.client) = (index + 1, None);
        }
    }

    /// Sends a request to the selected member. If `is_change` is true, it is sent once, because a
    /// second execution could have another effect; connecting is repeated. Otherwise it is repeated
    /// at the next member until one replies or [`EtcdSpec::timeout`] has passed.
    ///
    /// # Errors
    /// A member rejected the request, or none replied in time.
    pub(crate) async fn request<T, F>(
        &self,
        is_change: bool,
        question: impl Fn(Client) -> F,
    ) -> Result<T, ClusterStoreError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let started_at = Instant::now();
        loop {
            let remaining = self.spec.timeout.saturating_sub(started_at.elapsed());
            let (error, was_asked) = match self.client().await {
                Err(error) => (error, false),
                Ok((client, member)) => {
                    // A member that does not reply must leave time for the next one.
                    let share =
                        if is_change { remaining } else { remaining.min(self.spec.timeout / 3) };
                    match timeout(share, question(client)).await {
                        Ok(Ok(answer)) => {
                            self.record_reply();
                            return Ok(answer);
                        }
                        Ok(Err(error)) => (convert_error(&member, &error, is_change), true),
                        Err(_) => (timeout_error(&member, is_change), true),
                    }
                }
            };
            if !matches!(error.kind, Kind::Unreachable | Kind::OutcomeUnknown) {
                return Err(error);
            }
            let member = error.detail.split(": ").next().unwrap_or_default().to_owned();
            self.switch_member(&member);
            if (is_change && was_asked) || started_at.elapsed() + PAUSE >= self.spec.timeout {
                return Err(error);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
