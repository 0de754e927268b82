"""The blocks of a network as appendix D of Wei, Chen and Ma sees them, and what attacks work on."""
