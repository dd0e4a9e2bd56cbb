//! The job that all guests of the benchmark do; ../go/redact says what it is.

const MARK: &[u8] = b"[email]";

/// Reads the frame of a call (abi.md), which the host has checked to be JSON, and
/// returns the frame of the answer.
pub fn answer(frame: &[u8]) -> Vec<u8> {
    let doc = payload(frame);
    let head = br#"{"result":{"modified":true,"payload":"#;
    // An address has six bytes or more and the mark seven.
    let mut out = Vec::with_capacity(head.len() + doc.len() + doc.len() / 6 + 2);
    out.extend_from_slice(head);
    let mut done = 0; // doc[..done] is in out
    let mut i = 0;
    while i < doc.len() {
        if doc[i] == b'"' {
            let from = i + 1;
            i = string_end(doc, i);
            let next = doc[i + 1..].iter().find(|c| !is_space(**c));
            if next != Some(&b':') {
                scan(&mut out, &doc[..i], &mut done, from);
            }
        }
        i += 1;
    }
    if done == 0 {
        return br#"{"result":{"modified":false}}"#.to_vec();
    }
    out.extend_from_slice(&doc[done..]);
    out.extend_from_slice(b"}}");
    out
}

/// Finds the member "payload" of the outermost object.
fn payload(frame: &[u8]) -> &[u8] {
    let (mut depth, mut i) = (0, 0);
    while i < frame.len() {
        match frame[i] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let from = i;
                i = string_end(frame, i);
                if depth == 1 && frame[i + 1] == b':' && &frame[from..i + 1] == b"\"payload\"" {
                    return value(&frame[i + 2..]);
                }
            }
            _ => {}
        }
        i += 1;
    }
    &[]
}

/// Returns the array or object that b begins with.
fn value(b: &[u8]) -> &[u8] {
    let (mut depth, mut i) = (0, 0);
    while i < b.len() {
        match b[i] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return &b[..i + 1];
                }
            }
            b'"' => i = string_end(b, i),
            _ => {}
        }
        i += 1;
    }
    &[]
}

/// Returns where the string that begins at b[i] has its last quote.
fn string_end(b: &[u8], mut i: usize) -> usize {
    i += 1;
    while b[i] != b'"' {
        i += if b[i] == b'\\' { 2 } else { 1 };
    }
    i
}

/// Looks for addresses in b[i..] and appends what stands before and between
/// them, from b[*done..] on.
fn scan(out: &mut Vec<u8>, b: &[u8], done: &mut usize, mut i: usize) {
    let mut floor = i; // what stands before it is no part of an address
    while i < b.len() {
        if b[i] == b'\\' {
            i += if b[i + 1] == b'u' { 6 } else { 2 };
            floor = i;
            continue;
        }
        if b[i] == b'@' {
            let mut from = i;
            while from > floor && is_local(b[from - 1]) {
                from -= 1;
            }
            if let (true, Some(to)) = (from < i, domain_end(b, i + 1)) {
                out.extend_from_slice(&b[*done..from]);
                out.extend_from_slice(MARK);
                *done = to;
                floor = to;
                i = to;
                continue;
            }
        }
        i += 1;
    }
}

/// Returns where the domain name at b[from] ends: labels with a dot between
/// them, the last one of two or more letters.
fn domain_end(b: &[u8], from: usize) -> Option<usize> {
    let mut end = from;
    while end < b.len() && is_domain(b[end]) {
        end += 1;
    }
    while end > from && !b[end - 1].is_ascii_alphabetic() {
        end -= 1;
    }
    let mut dot = end;
    while dot > from && b[dot - 1].is_ascii_alphabetic() {
        dot -= 1;
    }
    if end - dot < 2 || dot - from < 2 || b[dot - 1] != b'.' {
        return None;
    }
    Some(end)
}

fn is_domain(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'.' || c == b'-'
}

fn is_local(c: u8) -> bool {
    is_domain(c) || c == b'_' || c == b'+' || c == b'%'
}

fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\n' | b'\r' | b'\t')
}
