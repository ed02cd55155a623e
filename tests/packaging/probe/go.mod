module probe

go 1.25
