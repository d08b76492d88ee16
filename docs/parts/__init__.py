"""The parts of pages that ``generate.py`` fills in: every public function of these modules, by its
name."""
