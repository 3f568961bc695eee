//! Login codes and sessions, held in memory only.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use subtle::ConstantTimeEq;

/// Validity of a login code.
pub(super) const CODE_SPAN: Duration = Duration::from_secs(60);
/// Validity of a session after its last request.
const SESSION_SPAN: Duration = Duration::from_secs(12 * 3600);
/// Time for which a ticket is valid.
pub(super) const TICKET_SPAN: Duration = Duration::from_secs(30);
/// Largest number of codes and sessions. A new one replaces the oldest.
const CODES_MAX: usize = 16;
const SESSIONS_MAX: usize = 64;
/// Largest number of unused tickets of one session. A new one replaces the oldest.
const TICKETS_MAX: usize = 8;
const SECRET_BYTES: usize = 32;

/// Unused login codes, and sessions of logged-in users.
#[derive(Default)]
pub(super) struct Logins {
    codes: Vec<Code>,
    /// Sessions in the order of their last use, so that the least recently used one is replaced
    /// first.
    sessions: Vec<Session>,
}

/// Secret as hexadecimal digits, compared in constant time.
struct Secret(String);

struct Code {
    secret: Secret,
    until: Instant,
}

struct Session {
    /// Value of the cookie, which the browser sends to every port of the host name. Permits nothing
    /// without `secret`.
    cookie: Secret,
    /// Value that only the pages of this console have.
    secret: Secret,
    until: Instant,
    tickets: Vec<Ticket>,
}

/// Permission to load one path once with the cookie alone.
struct Ticket {
    secret: Secret,
    path: String,
    until: Instant,
}

/// Both values of a session, as a login returns them and a request contains them.
pub(super) struct Credentials<S> {
    pub(super) cookie: S,
    pub(super) secret: S,
}

impl Logins {
    /// Creates a code for one login.
    ///
    /// # Errors
    /// The system cannot provide random bytes.
    pub(super) fn new_code(&mut self, now: Instant) -> Result<String, Errno> {
        let secret = Secret::new()?;
        let text = secret.0.clone();
        self.codes.retain(|code| now < code.until);
        make_room(&mut self.codes, CODES_MAX);
        self.codes.push(Code { secret, until: now + CODE_SPAN });
        Ok(text)
    }

    /// Consumes a one-time login code. Returns true if it was valid.
    pub(super) fn use_code(&mut self, now: Instant, shown_code: &str) -> bool {
        self.codes.retain(|code| now < code.until);
        let position = self.codes.iter().position(|code| code.secret.matches(shown_code));
        position.map(|position| self.codes.remove(position)).is_some()
    }

    /// Creates a session after a successful login.
    ///
    /// # Errors
    /// The system cannot provide random bytes.
    pub(super) fn new_session(&mut self, now: Instant) -> Result<Credentials<String>, Errno> {
        let (cookie, secret) = (Secret::new()?, Secret::new()?);
        let created = Credentials { cookie: cookie.0.clone(), secret: secret.0.clone() };
        self.end_expired(now);
        make_room(&mut self.sessions, SESSIONS_MAX);
        let until = now + SESSION_SPAN;
        self.sessions.push(Session { cookie, secret, until, tickets: Vec::new() });
        Ok(created)
    }

    /// Returns true if both values belong to one valid session, and extends its validity.
    pub(super) fn authenticate_and_extend(
        &mut self,
        now: Instant,
        credentials: &Credentials<&str>,
    ) -> bool {
        self.end_expired(now);
        let Some(position) = self.find(credentials.cookie) else { return false };
        if !self
            .sessions
            .get(position)
            .is_some_and(|session| session.secret.matches(credentials.secret))
        {
            return false;
        }
        self.extend_session(now, credentials.cookie)
    }

    /// Extends the validity of the session of a connection that has sent both values before.
    /// Returns true if the session is valid.
    pub(super) fn extend_session(&mut self, now: Instant, cookie: &str) -> bool {
        self.end_expired(now);
        let Some(position) = self.find(cookie) else { return false };
        let mut session = self.sessions.remove(position);
        session.until = now + SESSION_SPAN;
        self.sessions.push(session);
        true
    }

    /// Returns true if the cookie is that of a valid session, without extending its validity.
    /// Permits nothing by itself.
    pub(super) fn is_valid_session_cookie(&mut self, now: Instant, cookie: &str) -> bool {
        self.end_expired(now);
        self.find(cookie).is_some()
    }

    /// Creates a ticket of a session for a path. `None` if there is no such session.
    ///
    /// # Errors
    /// The system cannot provide random bytes.
    pub(super) fn new_ticket(
        &mut self,
        now: Instant,
        cookie: &str,
        path: String,
    ) -> Result<Option<String>, Errno> {
        let secret = Secret::new()?;
        self.end_expired(now);
        let position = self.find(cookie);
        let Some(session) = position.and_then(|position| self.sessions.get_mut(position)) else {
            return Ok(None);
        };
        let text = secret.0.clone();
        session.tickets.retain(|ticket| now < ticket.until);
        make_room(&mut session.tickets, TICKETS_MAX);
        session.tickets.push(Ticket { secret, path, until: now + TICKET_SPAN });
        Ok(Some(text))
    }

    /// Consumes a ticket. Returns true if it is valid for the session and the path.
    pub(super) fn use_ticket(
        &mut self,
        now: Instant,
        credentials: &Credentials<&str>,
        path: &str,
    ) -> bool {
        self.end_expired(now);
        let position = self.find(credentials.cookie);
        let Some(session) = position.and_then(|position| self.sessions.get_mut(position)) else {
            return false;
        };
        session.tickets.retain(|ticket| now < ticket.until);
        let position =
            session.tickets.iter().position(|ticket| ticket.secret.matches(credentials.secret));
        position
            .map(|position| session.tickets.remove(position))
            .is_some_and(|ticket| ticket.path == path)
    }

    /// Ends the session with this cookie.
    pub(super) fn end_session(&mut self, cookie: &str) {
        if let Some(position) = self.find(cookie) {
            self.sessions.remove(position);
        }
    }

    fn end_expired(&mut self, now: Instant) {
        self.sessions.retain(|session| now < session.until);
    }

    fn find(&self, cookie: &str) -> Option<usize> {
        self.sessions.iter().position(|session| session.cookie.matches(cookie))
    }
}

impl Secret {
    /// Creates a secret from random bytes of the system.
    fn new() -> Result<Self, Errno> {
        let mut bytes = [0_u8; SECRET_BYTES];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            filled += getrandom(rest, GetRandomFlags::empty())?;
        }
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    fn matches(&self, secret: &str) -> bool {
        bool::from(self.0.as_bytes().ct_eq(secret.as_bytes()))
    }
}

/// Removes the first element if the list contains `max_len` elements.
fn make_room<T>(entries: &mut Vec<T>, max_len: usize) {
    if entries.len() >= max_len {
        entries.remove(0);
    }
}

#[cfg(test)]
#[path = "logins_tests.rs"]
mod tests;
