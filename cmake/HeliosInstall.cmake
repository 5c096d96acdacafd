# What a program that embeds HELIOS links: helios::helios.
