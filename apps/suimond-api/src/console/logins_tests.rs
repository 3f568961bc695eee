use super::*;

fn borrowed(credentials: &Credentials<String>) -> Credentials<&str> {
    Credentials { cookie: &credentials.cookie, secret: &credentials.secret }
}

#[test]
fn a_code_logs_in_once_and_for_a_minute() {
    let (mut logins, now) = (Logins::default(), Instant::now());
    let code = logins.new_code(now).unwrap();
    assert_eq!(code.len(), 2 * SECRET_BYTES);
    assert!(!logins.use_code(now, &code[1..]) && !logins.use_code(now, ""));
    assert!(logins.use_code(now, &code));
    assert!(!logins.use_code(now, &code), "used up");
    let late_code = logins.new_code(now).unwrap();
    assert_ne!(late_code, code);
    assert!(!logins.use_code(now + CODE_SPAN, &late_code));
}

#[test]
fn a_session_lasts_while_it_is_used_and_no_longer_than_wanted() {
    let (mut logins, mut now) = (Logins::default(), Instant::now());
    let session = logins.new_session(now).unwrap();
    let code = logins.new_code(now).unwrap();
    let of_code = Credentials { cookie: code.as_str(), secret: code.as_str() };
    assert!(!logins.authenticate_and_extend(now, &of_code), "a code is no session");
    for _ in 0..3 {
        now += SESSION_SPAN - Duration::from_secs(1);
        assert!(logins.authenticate_and_extend(now, &borrowed(&session)));
    }
    let before_end = now + SESSION_SPAN - Duration::from_secs(1);
    assert!(logins.is_valid_session_cookie(before_end, &session.cookie));
    assert!(!logins.is_valid_session_cookie(before_end + Duration::from_secs(1), &session.cookie));
    let session = logins.new_session(now).unwrap();
    assert!(!logins.authenticate_and_extend(now + SESSION_SPAN, &borrowed(&session)));
    let session = logins.new_session(now).unwrap();
    logins.end_session(&session.cookie);
    assert!(!logins.authenticate_and_extend(now, &borrowed(&session)));
}

#[test]
fn a_cookie_without_the_secret_of_the_same_session_is_worth_nothing() {
    let (mut logins, now) = (Logins::default(), Instant::now());
    let [first, second] = [(); 2].map(|()| logins.new_session(now).unwrap());
    assert_ne!(first.cookie, first.secret);
    for secret in ["", &first.cookie, &second.secret, &first.secret[1..]] {
        assert!(
            !logins.authenticate_and_extend(now, &Credentials { cookie: &first.cookie, secret })
        );
    }
    let swapped = Credentials { cookie: first.secret.as_str(), secret: first.cookie.as_str() };
    assert!(!logins.authenticate_and_extend(now, &swapped));
    assert!(
        logins.authenticate_and_extend(now, &borrowed(&first))
            && logins.authenticate_and_extend(now, &borrowed(&second))
    );
    // A cookie alone does not extend its session.
    let before_end = now + SESSION_SPAN - Duration::from_secs(1);
    assert!(logins.is_valid_session_cookie(before_end, &first.cookie));
    assert!(!logins.is_valid_session_cookie(before_end + Duration::from_secs(1), &first.cookie));
}

#[test]
fn a_ticket_is_for_one_use_of_one_path_by_one_session_for_half_a_minute() {
    let (mut logins, now) = (Logins::default(), Instant::now());
    let [first, second] = [(); 2].map(|()| logins.new_session(now).unwrap().cookie);
    let ticket = |logins: &mut Logins| logins.new_ticket(now, &first, "/a".to_owned()).unwrap();
    let used = |logins: &mut Logins, after, cookie: &str, ticket: &str, path: &str| {
        logins.use_ticket(now + after, &Credentials { cookie, secret: ticket }, path)
    };
    let (zero, last) = (Duration::ZERO, TICKET_SPAN - Duration::from_millis(1));
    let valid_ticket = ticket(&mut logins).unwrap();
    assert!(!used(&mut logins, zero, &second, &valid_ticket, "/a"), "another session's");
    assert!(used(&mut logins, last, &first, &valid_ticket, "/a"));
    assert!(!used(&mut logins, last, &first, &valid_ticket, "/a"), "used");
    let other_ticket = ticket(&mut logins).unwrap();
    assert!(!used(&mut logins, zero, &first, &other_ticket, "/b"));
    assert!(!used(&mut logins, zero, &first, &other_ticket, "/a"), "used up by the attempt");
    let late_ticket = ticket(&mut logins).unwrap();
    assert!(!used(&mut logins, TICKET_SPAN, &first, &late_ticket, "/a"));
    assert_eq!(logins.new_ticket(now, "none", "/a".to_owned()), Ok(None));
    // The oldest of too many is replaced.
    let tickets: Vec<_> = (0..=TICKETS_MAX).map(|_| ticket(&mut logins).unwrap()).collect();
    assert!(!used(&mut logins, zero, &first, &tickets[0], "/a"));
    assert!(tickets[1..].iter().all(|ticket| used(&mut logins, zero, &first, ticket, "/a")));
    let ended_ticket = ticket(&mut logins).unwrap();
    logins.end_session(&first);
    assert!(!used(&mut logins, zero, &first, &ended_ticket, "/a"));
}

#[test]
fn codes_and_sessions_are_bounded_and_the_least_recently_used_is_replaced() {
    let (mut logins, now) = (Logins::default(), Instant::now());
    let first = logins.new_session(now).unwrap();
    let second = logins.new_session(now).unwrap();
    for _ in 2..SESSIONS_MAX {
        logins.new_session(now).unwrap();
    }
    assert!(logins.authenticate_and_extend(now, &borrowed(&first)));
    logins.new_session(now).unwrap();
    assert!(
        logins.authenticate_and_extend(now, &borrowed(&first))
            && !logins.authenticate_and_extend(now, &borrowed(&second))
    );
    for _ in 0..2 * CODES_MAX {
        logins.new_code(now).unwrap();
    }
    assert_eq!((logins.codes.len(), logins.sessions.len()), (CODES_MAX, SESSIONS_MAX));
}
