"""A Kubernetes with the stock Argo Rollouts controller and a real gateway, without docker.

Everything runs in two network namespaces of its own (one for the node, one for the pods) and keeps its state in one
folder. ::

    settings     names, addresses, versions: what there is to choose
    tools        the programs, built from pinned Go modules, cached by what they are built from
    linux        the few system calls that Python does not have
    network      the namespaces, their addresses and their processes
    process      start, watch and stop one program
    certificates the cluster's authority, and who is who
    controlplane etcd, kube-apiserver, kube-controller-manager, kube-scheduler
    pods         kwok, and the echo program that answers at the pods' addresses
    container    a process confined as the controller's container is, restarted as a kubelet does
    controller   the stock Argo Rollouts controller in such a container, with the plugin
    gateway      Envoy Gateway and Envoy
    cluster      the order of it all: up, down, restart
    cli          `python -m e2e.cluster`
"""
