from lucius_cli.main import main

main()
