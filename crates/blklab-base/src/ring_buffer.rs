//! The pages of tracefs's ring buffers (`trace_pipe_raw`), whose layout `header_page` and each event's
//! `format` describe.
//!
//! A page begins with the time of its first event and the length of its data. An event begins with
//! a word: the lower 5 bits are its kind or its length, the others the time since the previous
//! event; see `include/linux/ring_buffer.h`.

/// The lower bits of a page's length; the others are flags.
const COMMIT: u64 = (1 << 27) - 1;
/// The flag for missing events before this page.
pub const MISSED: u64 = 1 << 31;
/// The flag for their number behind the page's data.
const MISSED_STORED: u64 = 1 << 30;

/// Kinds of entries that are not events, in the place of a length in words.
pub mod kind {
    /// Nothing, up to the end of the page or for some words.
    pub const PADDING: u32 = 29;
    /// More time passed than fits an event's word.
    pub const TIME_EXTEND: u32 = 30;
    /// A whole time.
    pub const TIME_STAMP: u32 = 31;
}

/// The position of a field.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// From the line `field:TYPE NAME; offset:N; size:N; ...` of a `format` file.
    pub fn find(format: &str, name: &str) -> Option<Field> {
        let line = format.lines().find_map(|line| {
            let (declared, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
            let found = declared.split_whitespace().last()?.split('[').next()?;
            (found == name).then_some(rest)
        })?;
        let number = |key: &str| -> Option<usize> {
            line.split(';').find_map(|part| part.trim().strip_prefix(key)?.parse().ok())
        };
        Some(Field { offset: number("offset:")?, size: number("size:")? })
    }

    /// The same, or one line that names the text that lacks it.
    ///
    /// # Errors
    /// There is no such field.
    pub fn needed(format: &str, whose: &str, name: &str) -> Result<Field, String> {
        Field::find(format, name).ok_or_else(|| format!("tracefs: {whose}: no field '{name}'"))
    }

    /// Its bytes.
    pub fn bytes(self, of: &[u8]) -> Option<&[u8]> {
        of.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Its text, up to the first NUL.
    pub fn text(self, of: &[u8]) -> Option<&[u8]> {
        self.bytes(of)?.split(|byte| *byte == 0).next()
    }

    /// A number of 1, 2, 4 or 8 bytes.
    pub fn number(self, of: &[u8]) -> Option<u64> {
        let bytes = self.bytes(of)?;
        Some(match self.size {
            1 => bytes[0].into(),
            2 => u16::from_ne_bytes(bytes.try_into().ok()?).into(),
            4 => u32::from_ne_bytes(bytes.try_into().ok()?).into(),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }
}

/// The number of a tracepoint's events, from its `format`: `ID: 17`.
pub fn id_of(format: &str) -> Option<u64> {
    format.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok())
}

/// The layout of pages.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    time: Field,
    commit: Field,
    data: usize,
}

/// An entry of a page.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// An event's bytes.
    Event(&'a [u8]),
    /// Events are missing before this time, because the kernel had no room for them: how many, if it
    /// says so.
    Missed(Option<u64>),
}

impl Pages {
    /// From the text of `header_page`.
    ///
    /// # Errors
    /// One line: a required field is missing.
    pub fn new(header_page: &str) -> Result<Pages, String> {
        let field = |name| Field::needed(header_page, "header_page", name);
        Ok(Pages { time: field("timestamp")?, commit: field("commit")?, data: field("data")?.offset })
    }

    /// Calls `take` with each entry of a page and its time. `None` at the first damaged byte.
    pub fn walk(&self, page: &[u8], mut take: impl FnMut(u64, Entry<'_>)) -> Option<()> {
        let commit = self.commit.number(page)?;
        let mut time = self.time.number(page)?;
        let data = page.get(self.data..)?.get(..(commit & COMMIT) as usize)?;
        let word = |at: usize| Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?));
        let mut missed = (commit & MISSED != 0).then(|| {
            let end = self.data + (commit & COMMIT) as usize;
            let count = page.get(end..end + 8).filter(|_| commit & MISSED_STORED != 0)?;
            Some(u64::from_ne_bytes(count.try_into().ok()?))
        });
        let mut at = 0;
        while at < data.len() {
            let head = word(at)?;
            let (of_kind, delta) = (head & 31, u64::from(head >> 5));
            let (from, until) = match of_kind {
                kind::TIME_EXTEND => (at + 8, at + 8),
                kind::TIME_STAMP => (at + 8, at + 8),
                kind::PADDING if delta == 0 => return Some(()),
                kind::PADDING => (at, at + 4 + word(at + 4)? as usize),
                0 => (at + 8, at + 4 + word(at + 4)? as usize),
                words => (at + 4, at + 4 + 4 * words as usize),
            };
            time = match of_kind {
                kind::TIME_EXTEND => time.checked_add(u64::from(word(at + 4)?) << 27 | delta)?,
                // The upper bits, which do not fit here, are unchanged.
                kind::TIME_STAMP => time & !((1 << 59) - 1) | u64::from(word(at + 4)?) << 27 | delta,
                _ => time.checked_add(delta)?,
            };
            if let Some(count) = missed.take() {
                take(time, Entry::Missed(count));
            }
            if of_kind < kind::PADDING {
                take(time, Entry::Event(data.get(from..until)?));
            }
            at = until;
        }
        Some(())
    }
}
