//! Login codes and sessions.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use subtle::ConstantTimeEq;

/// Validity of a login code.
pub(super) const CODE_SPAN: Duration = Duration::from_secs(60);
/// Validity of a session after its last request.
const SESSION_SPAN: Duration = Duration::from_secs(12 * 3600);
/// Largest number of codes and sessions. A new one replaces the oldest.
const CODES_MAX: usize = 16;
const SESSIONS_MAX: usize = 64;
const SECRET_BYTES: usize = 32;

/// Unused codes and sessions, held in memory only.
#[derive(Default)]
pub(super) struct Logins {
    codes: Vec<Secret>,
    sessions: Vec<Secret>,
}

/// Secret as hexadecimal digits.
struct Secret {
    text: String,
    /// Expiry time.
    until: Instant,
}

impl Logins {
    /// Creates a code for one login.
    ///
    /// # Errors
    /// The system cannot provide random bytes.
    pub(super) fn new_code(&mut self, now: Instant) -> Result<String, Errno> {
        add(&mut self.codes, CODES_MAX, now, CODE_SPAN)
    }

    /// Consumes a code. Returns true if it was valid.
    pub(super) fn use_code(&mut self, now: Instant, code: &str) -> bool {
        end(&mut self.codes, now);
        let found = find(&self.codes, code);
        found.map(|at| self.codes.remove(at)).is_some()
    }

    /// Creates a session after a successful login.
    ///
    /// # Errors
    /// The system cannot provide random bytes.
    pub(super) fn new_session(&mut self, now: Instant) -> Result<String, Errno> {
        add(&mut self.sessions, SESSIONS_MAX, now, SESSION_SPAN)
    }

    /// Returns true for a valid session, and extends its validity.
    pub(super) fn renew(&mut self, now: Instant, session: &str) -> bool {
        end(&mut self.sessions, now);
        let Some(at) = find(&self.sessions, session) else { return false };
        // Sessions are ordered by last use, so that the least recently used one is replaced first.
        let mut found = self.sessions.remove(at);
        found.until = now + SESSION_SPAN;
        self.sessions.push(found);
        true
    }

    /// Returns true for a valid session without extending its validity. Used for pages that only
    /// receive updates.
    pub(super) fn is_session(&mut self, now: Instant, session: &str) -> bool {
        end(&mut self.sessions, now);
        find(&self.sessions, session).is_some()
    }

    /// Ends a session.
    pub(super) fn end_session(&mut self, session: &str) {
        if let Some(at) = find(&self.sessions, session) {
            self.sessions.remove(at);
        }
    }
}

fn add(
    secrets: &mut Vec<Secret>,
    most: usize,
    now: Instant,
    span: Duration,
) -> Result<String, Errno> {
    let mut bytes = [0_u8; SECRET_BYTES];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += getrandom(rest, GetRandomFlags::empty())?;
    }
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    end(secrets, now);
    if secrets.len() >= most {
        secrets.remove(0);
    }
    secrets.push(Secret { text: text.clone(), until: now + span });
    Ok(text)
}

fn end(secrets: &mut Vec<Secret>, now: Instant) {
    secrets.retain(|secret| now < secret.until);
}

/// Returns the index of a secret. The comparison takes constant time.
fn find(secrets: &[Secret], text: &str) -> Option<usize> {
    let is_it = |secret: &Secret| bool::from(secret.text.as_bytes().ct_eq(text.as_bytes()));
    secrets.iter().position(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_logs_in_once_and_for_a_minute() {
        let (mut logins, now) = (Logins::default(), Instant::now());
        let code = logins.new_code(now).unwrap();
        assert_eq!(code.len(), 2 * SECRET_BYTES);
        assert!(!logins.use_code(now, &code[1..]) && !logins.use_code(now, ""));
        assert!(logins.use_code(now, &code));
        assert!(!logins.use_code(now, &code), "used up");
        let late = logins.new_code(now).unwrap();
        assert_ne!(late, code);
        assert!(!logins.use_code(now + CODE_SPAN, &late));
    }

    #[test]
    fn a_session_lasts_while_it_is_used_and_no_longer_than_wanted() {
        let (mut logins, mut now) = (Logins::default(), Instant::now());
        let session = logins.new_session(now).unwrap();
        let code = logins.new_code(now).unwrap();
        assert!(!logins.renew(now, &code), "a code is no session");
        for _ in 0..3 {
            now += SESSION_SPAN - Duration::from_secs(1);
            assert!(logins.renew(now, &session));
        }
        let late = now + SESSION_SPAN - Duration::from_secs(1);
        assert!(
            logins.is_session(late, &session)
                && !logins.is_session(late + Duration::from_secs(1), &session)
        );
        let session = logins.new_session(now).unwrap();
        assert!(!logins.renew(now + SESSION_SPAN, &session));
        let session = logins.new_session(now).unwrap();
        logins.end_session(&session);
        assert!(!logins.renew(now, &session));
    }

    #[test]
    fn codes_and_sessions_are_bounded_and_the_one_used_longest_ago_goes() {
        let (mut logins, now) = (Logins::default(), Instant::now());
        let first = logins.new_session(now).unwrap();
        let second = logins.new_session(now).unwrap();
        for _ in 2..SESSIONS_MAX {
            logins.new_session(now).unwrap();
        }
        assert!(logins.renew(now, &first));
        logins.new_session(now).unwrap();
        assert!(logins.renew(now, &first) && !logins.renew(now, &second));
        for _ in 0..2 * CODES_MAX {
            logins.new_code(now).unwrap();
        }
        assert_eq!((logins.codes.len(), logins.sessions.len()), (CODES_MAX, SESSIONS_MAX));
    }
}
