//! The lines of a job file.

/// What a line is, without its comment and the blanks around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Nothing, or only a comment.
    Empty,
    /// `[name]`, as written.
    Section(&'a str),
    /// `include FILE`: the file.
    Include(&'a str),
    /// `name=value` or `name`, with variables as written.
    Option(&'a str),
}

impl<'a> Line<'a> {
    /// A `;` or `#` ends a line anywhere in it.
    pub fn of(text: &'a str) -> Line<'a> {
        let line = text.split([';', '#']).next().unwrap_or("").trim();
        if line.is_empty() {
            return Line::Empty;
        }
        if line.starts_with('[') {
            return Line::Section(line);
        }
        match line.strip_prefix("include").filter(|file| file.starts_with(char::is_whitespace)) {
            Some(file) => Line::Include(file.trim()),
            None => Line::Option(line),
        }
    }

    /// The name of an option, or the whole of another line, for messages.
    pub fn name(self) -> &'a str {
        match self {
            Line::Empty => "",
            Line::Include(_) => "include",
            Line::Section(line) | Line::Option(line) => line.split('=').next().unwrap_or(line).trim(),
        }
    }
}

/// Whether a section of this name sets the defaults of those after it.
pub fn is_global(section: &str) -> bool {
    section.starts_with("global")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_stands_before_its_comment() {
        assert_eq!(Line::of(" bs = 4k ; small"), Line::Option("bs = 4k"));
        assert_eq!(Line::of(" bs = 4k").name(), "bs");
        assert_eq!(Line::of("# bs=4k"), Line::Empty);
        assert_eq!(Line::of("[a] # first"), Line::Section("[a]"));
        assert_eq!(Line::of("include\tother.fio"), Line::Include("other.fio"));
        assert_eq!(Line::of("included=1"), Line::Option("included=1"));
    }
}
